import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/**
 * What the page says before its styles are there is seen at once. Its scripts wait for the styles, wherever they stand; those
 * that the component library writes into the root come after them.
 */
const stylesBehindTheFirstWords: Plugin = {
  name: 'styles-behind-the-first-words',
  transformIndexHtml: {
    order: 'post',
    handler(html) {
      const links = html.match(/<link rel="stylesheet"[^>]*>\n?/g) ?? [];
      const without = links.reduce((rest, link) => rest.replace(link, ''), html);
      return without.replace(
        '<div id="root">',
        `${links.map((link) => link.trim()).join('\n')}\n<div id="root">`,
      );
    },
  },
};

/** Each component of the library comes with its own styles, and is in the same file of scripts or a later one as they are. */
const stylesOfEachComponent: Plugin = {
  name: 'styles-of-each-component',
  transform(code, id) {
    const name = /@mantine\/core\/esm\/.*\/(\w+)\.module\.mjs$/.exec(id)?.[1];
    return name === undefined
      ? null
      : { code: `import '@mantine/core/styles/${name}.layer.css';\n${code}`, map: null };
  },
};

// Relative, so that the console works below any path. The server tells each page where its root is (`<base>`).
export default defineConfig({
  base: './',
  plugins: [react(), stylesOfEachComponent, stylesBehindTheFirstWords],
  optimizeDeps: { exclude: ['@mantine/core'] },
  build: {
    target: 'es2022',
    // What `light-dark()` needs. Told of older ones, the build would rewrite it into something that shows neither colour.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    modulePreload: { polyfill: false },
    // What every page begins with in one file, and what several of the others share in another: as thirty of a few hundred
    // bytes each they wait for one another on a slow network, and each page's own would be found only once they are there.
    rolldownOptions: {
      output: {
        chunkFileNames: ({ name }) => `assets/${name.replace(/~.*/, '')}-[hash].js`,
        codeSplitting: {
          groups: [
            { name: 'first', tags: ['$initial'], priority: 1 },
            { name: 'shared', minShareCount: 3, entriesAware: true, entriesAwareMergeThreshold: 10_000 },
          ],
        },
      },
    },
  },
  // `vite` alone serves the sources for development and passes calls to a management service on its usual port.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:3000' } },
});
