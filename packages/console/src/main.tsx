// In a layer: whatever is ours comes before the library's, wherever its file is linked. The build adds what each of its
// components needs.
import '@mantine/core/styles/baseline.layer.css';
import '@mantine/core/styles/default-css-variables.layer.css';
import '@mantine/core/styles/global.layer.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, startTransition, useLayoutEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { RouterProvider } from 'react-router';
import { Toasts } from './components/opened-later.tsx';
import { createRouter } from './routes.tsx';
import { styleNonce } from './served-page.ts';
import { createQueryClient, sessionQuery } from './session/session.ts';
import { cssVariables, theme } from './theme.ts';

// Where the library that keeps the page from scrolling behind a dialog looks for the nonce of its style.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

const root = document.getElementById('root');
if (!root) throw new Error('The page has no #root.');
const reactRoot = createRoot(root);
// As a transition it is drawn in pieces, between which a slow device does other things.
startTransition(() =>
  reactRoot.render(
    <StrictMode>
      <App />
    </StrictMode>,
  ),
);

function App() {
  const [client] = useState(() => {
    const created = createQueryClient();
    // Beside the page's own scripts, not after them.
    void created.prefetchQuery(sessionQuery);
    return created;
  });
  const [router] = useState(() => createRouter(client));
  useLayoutEffect(() => document.getElementById('boot')?.remove(), []);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={client}>
        <Toasts />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
