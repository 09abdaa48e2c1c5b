/** Subscriptions that post to the same server share its fate: scheme, host and port. */
export function endpointOf(clientUrl: string): string {
  return URL.canParse(clientUrl) ? new URL(clientUrl).origin : clientUrl;
}
