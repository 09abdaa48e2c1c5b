import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { useState } from 'react';
import { RouterProvider } from 'react-router';
import { createQueryClient } from './query-client.ts';
import { createRouter } from './routes.tsx';
import { styleNonce } from './served-page.ts';
import { cssVariables, theme } from './theme.ts';

export function App() {
  const [client] = useState(createQueryClient);
  const [router] = useState(createRouter);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={client}>
        <Notifications position="bottom-right" aria-live="polite" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
