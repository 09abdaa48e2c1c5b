/*
 * pg asks whether it runs in a worker of Cloudflare: by `navigator`, which Node has since 21, or else by making a `Response`, for
 * which Node 20 loads its whole `fetch` and compiles its WebAssembly. To be imported before anything that imports pg.
 */
if (!('navigator' in globalThis)) {
  const [major] = process.versions.node.split('.');
  Object.assign(globalThis, { navigator: { userAgent: `Node.js/${major}` } });
}

export {};
