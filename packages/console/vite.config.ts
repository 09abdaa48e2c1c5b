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

// Relative, so that the console works below any path. The server tells each page where its root is (`<base>`).
export default defineConfig({
  base: './',
  plugins: [react(), stylesBehindTheFirstWords],
  build: {
    target: 'es2022',
    // What `light-dark()` needs. Told of older ones, the build would rewrite it into something that shows neither colour.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    modulePreload: { polyfill: false },
    // What several pages share, in one file: as thirty of a few hundred bytes each they wait for one another on a slow
    // network, and each page's own would be found only once they are there.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 3 }] } },
    },
  },
  // `vite` alone serves the sources for development and passes calls to a management service on its usual port.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:3000' } },
});
