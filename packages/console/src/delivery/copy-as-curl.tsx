import type { DeliveryDetail } from '../api/types.ts';
import { CopyButton } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { curlCommand } from '../words/code.ts';

/** The request as a command, to try an endpoint with the very same body. */
export function CopyAsCurl({ delivery, url }: { delivery: DeliveryDetail; url: string | undefined }) {
  const { payload } = delivery;
  if (url === undefined)
    return <GuardedButton reason="The endpoint’s address is not known yet.">Copy as curl</GuardedButton>;
  if (payload === null)
    return (
      <GuardedButton reason="The payload is no longer kept: its event has left the log.">
        Copy as curl
      </GuardedButton>
    );
  return (
    <CopyButton
      label="Copy as curl"
      what="the request as a curl command"
      size="sm"
      value={() => curlCommand({ url, body: payload })}
    />
  );
}
