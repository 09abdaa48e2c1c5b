import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/**
 * Moves the links of styles behind the loading text, so that browsers show it before the styles are loaded. Scripts wait for
 * the styles in any position, and the `<style>` elements that the component library renders into the root still follow them.
 */
const stylesAfterFirstText: Plugin = {
  name: 'styles-after-first-text',
  transformIndexHtml: {
    order: 'post',
    handler(html) {
      const links = html.match(/<link rel="stylesheet"[^>]*>\n?/g) ?? [];
      const htmlWithoutLinks = links.reduce((rest, link) => rest.replace(link, ''), html);
      return htmlWithoutLinks.replace(
        '<div id="root">',
        `${links.map((link) => link.trim()).join('\n')}\n<div id="root">`,
      );
    },
  },
};

/** Imports the styles of each component of the library in its module, so that they are loaded with it. */
const stylesOfEachComponent: Plugin = {
  name: 'component-styles',
  transform(code, id) {
    const name = /@mantine\/core\/esm\/.*\/(\w+)\.module\.mjs$/.exec(id)?.[1];
    return name === undefined
      ? null
      : { code: `import '@mantine/core/styles/${name}.layer.css';\n${code}`, map: null };
  },
};

// Relative URLs let the console work below any path. The server writes the root into each page (`<base>`).
export default defineConfig({
  base: './',
  plugins: [react(), stylesOfEachComponent, stylesAfterFirstText],
  optimizeDeps: { exclude: ['@mantine/core'] },
  build: {
    target: 'es2022',
    // Browsers that support `light-dark()`. For older targets the build would transpile it into code that shows neither
    // colour.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    modulePreload: { polyfill: false },
    // The initial scripts form one chunk, and modules that at least three pages share form others. As thirty chunks of a few
    // hundred bytes they would wait for one another on a slow network, and chunks of pages would be found only after them.
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
  // Only for development: `vite` serves the sources and forwards calls to a management service on its default port.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:3000' } },
});
