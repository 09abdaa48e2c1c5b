import { quoteForScript, quoteForShell, routePattern } from '../wording/code.ts';

/** Code that verifies deliveries to the webhook's endpoint, or signs a body (docs/contract.md#signing). */
interface VerificationSample {
  key: 'express' | 'python' | 'openssl';
  label: string;
  code: string;
}

/**
 * @param clientUrl a valid URL
 * @param signatureHeader name of the header that carries the signature
 */
export function verificationSamples(clientUrl: string, signatureHeader: string): VerificationSample[] {
  const { pathname, href } = new URL(clientUrl);
  return [
    { key: 'express', label: 'Express', code: expressSample(pathname, signatureHeader.toLowerCase()) },
    { key: 'python', label: 'Python', code: pythonSample(pathname, signatureHeader.toLowerCase()) },
    { key: 'openssl', label: 'openssl', code: opensslSample(href, signatureHeader) },
  ];
}

function expressSample(path: string, signatureHeader: string): string {
  return `import { createHmac, timingSafeEqual } from 'node:crypto';
import express from 'express';

const app = express();
// Verify the raw bytes: a body that was parsed and serialized again has another signature.
app.post(${quoteForScript(routePattern(path))}, express.raw({ type: '*/*' }), (request, response) => {
  const expected = createHmac('sha256', process.env.HMAC_SECRET).update(request.body).digest();
  const received = Buffer.from(request.get(${quoteForScript(signatureHeader)}) ?? '', 'hex');
  if (received.length !== expected.length || !timingSafeEqual(received, expected))
    return response.sendStatus(401);
  const event = JSON.parse(request.body); // deduplicate by event.eventId
  console.log(event.eventType, event.data.runId, event.data.runStatus);
  response.sendStatus(204);
});
app.listen(process.env.PORT ?? 8080);
`;
}

function pythonSample(path: string, signatureHeader: string): string {
  return `# Standard library only
import hashlib, hmac, json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        if self.path.split("?")[0] != ${JSON.stringify(path)}:
            return self.send_error(404)
        # Verify the raw bytes: a body that was parsed and serialized again has another signature.
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        expected = hmac.new(os.environ["HMAC_SECRET"].encode(), body, hashlib.sha256).hexdigest()
        genuine = hmac.compare_digest(expected.encode(), self.headers.get(${JSON.stringify(signatureHeader)}, "").encode())
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if genuine:
            event = json.loads(body)  # deduplicate by event["eventId"]
            print(event["eventType"], event["data"]["runId"], event["data"]["runStatus"], flush=True)

HTTPServer(("", int(os.environ.get("PORT", 8080))), Hook).serve_forever()
`;
}

function opensslSample(url: string, signatureHeader: string): string {
  return `# The signature of a body, as in the ${signatureHeader} header of its delivery:
openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex < body.json

# Send your own signed body to your endpoint:
SIGNATURE=$(openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex < body.json | sed 's/^.* //')
curl -i ${quoteForShell(url)} \\
  -H "${signatureHeader}: $SIGNATURE" \\
  -H 'Content-Type: application/json' \\
  --data-binary @body.json
`;
}
