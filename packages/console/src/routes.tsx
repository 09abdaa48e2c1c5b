import type { QueryClient } from '@tanstack/react-query';
import { createBrowserRouter, type Params } from 'react-router';
import { basePath } from './served-page.ts';
import { AccountLayout, HomeRedirect, RequireSession } from './session/guards.tsx';
import { NotFoundPage, PageErrorBoundary } from './shell/error-pages.tsx';
import { Shell } from './shell/shell.tsx';
import * as webhookPage from './webhook/webhook-page.tsx';
import * as webhooksPage from './webhooks/webhooks-page.tsx';

/**
 * Every page is a module that exports `Component`. The list and the page of a webhook, which are opened first most often, are
 * in the initial chunk and prefetch their data in parallel with the session; every other page is a separate, lazy chunk.
 */
export function createRouter(client: QueryClient) {
  const router = createRoutes();
  // Prefetches only for the first page: on later pages, an expired session must be reported before data is requested.
  const { matches, location } = router.state;
  for (const { route, params } of matches)
    (route.handle as Prefetch | undefined)?.(client, params, new URLSearchParams(location.search));
  return router;
}

/** Prefetches the data of a page before it is rendered. */
type Prefetch = (client: QueryClient, params: Params, search: URLSearchParams) => void;

function createRoutes() {
  return createBrowserRouter(
    [
      {
        errorElement: <PageErrorBoundary />,
        hydrateFallbackElement: <></>,
        children: [
          { path: 'sign-out', lazy: () => import('./session/sign-out-page.tsx') },
          { path: 'sign-in', lazy: () => import('./session/sign-in-page.tsx') },
          {
            element: <RequireSession />,
            children: [
              {
                element: <Shell />,
                children: [
                  {
                    errorElement: <PageErrorBoundary />,
                    children: [
                      { index: true, element: <HomeRedirect /> },
                      { path: 'profile/api-access', lazy: () => import('./profile/api-access-page.tsx') },
                      { path: 'profile/security', lazy: () => import('./profile/security-page.tsx') },
                      {
                        path: 'accounts/:accountId/settings/webhooks',
                        element: <AccountLayout />,
                        children: [
                          {
                            index: true,
                            Component: webhooksPage.Component,
                            handle: webhooksPage.prefetch,
                          },
                          { path: 'new', lazy: () => import('./webhook-form/new-webhook-page.tsx') },
                          {
                            path: ':webhookId',
                            Component: webhookPage.Component,
                            handle: webhookPage.prefetch,
                          },
                          {
                            path: ':webhookId/edit',
                            lazy: () => import('./webhook-form/edit-webhook-page.tsx'),
                          },
                          {
                            path: ':webhookId/help',
                            lazy: () => import('./webhook-help/help-page.tsx'),
                          },
                          {
                            path: ':webhookId/signature',
                            lazy: () => import('./signature/signature-page.tsx'),
                          },
                          {
                            path: ':webhookId/deliveries/:deliveryId',
                            lazy: () => import('./delivery/delivery-page.tsx'),
                          },
                        ],
                      },
                      {
                        path: 'accounts/:accountId/settings/audit',
                        element: <AccountLayout />,
                        children: [{ index: true, lazy: () => import('./audit/audit-page.tsx') }],
                      },
                      {
                        path: 'accounts/:accountId/settings/tokens',
                        element: <AccountLayout />,
                        children: [{ index: true, lazy: () => import('./tokens/tokens-page.tsx') }],
                      },
                      {
                        path: 'accounts/:accountId/runs',
                        element: <AccountLayout />,
                        children: [
                          { index: true, lazy: () => import('./runs/runs-page.tsx') },
                          { path: ':runId', lazy: () => import('./runs/run-page.tsx') },
                        ],
                      },
                      {
                        path: 'accounts/:accountId/events',
                        element: <AccountLayout />,
                        children: [{ index: true, lazy: () => import('./events/events-page.tsx') }],
                      },
                      { path: '*', element: <NotFoundPage what="page" /> },
                    ],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
    { basename: basePath },
  );
}
