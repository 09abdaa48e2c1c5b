// The library's styles are in a layer, so that the console's styles have precedence in any order of the files. The build adds
// the styles of each component (vite.config.ts).
import '@mantine/core/styles/baseline.layer.css';
import '@mantine/core/styles/default-css-variables.layer.css';
import '@mantine/core/styles/global.layer.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, startTransition, useLayoutEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { RouterProvider } from 'react-router';
import { Toasts } from './components/lazy-popover.tsx';
import { createRouter } from './routes.tsx';
import { styleNonce } from './served-page.ts';
import { createQueryClient, sessionQuery } from './session/session.ts';
import { cssVariables, theme } from './theme.ts';

// The scroll lock of dialogs reads the nonce of its style from this variable.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

const root = document.getElementById('root');
if (!root) throw new Error('The page has no #root.');
const reactRoot = createRoot(root);
// React renders a transition in slices, between which a slow device can do other work.
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
    // Requests the session while the scripts of the page are loading.
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
