import { RECEIVER_TEMPLATES, type WebhookSettings } from './receiver-templates.ts';

interface ReceiverFile {
  name: string;
  code: string;
}

/** A receiver of `examples/receivers` on the help page, loaded on demand. */
export interface Receiver {
  key: keyof typeof RECEIVER_TEMPLATES;
  label: string;
  /** Loads the files. `fill` is applied to the first. */
  load: () => Promise<ReceiverFile[]>;
  fill: (code: string, webhook: WebhookSettings) => string;
  /** Commands that run the receiver in the folder of its files. */
  run: string;
}

const SECRET_NOTE =
  '# The secret of this webhook. It was shown when it was created; if you lost it, rotate it.';

export const RECEIVERS: readonly Receiver[] = [
  {
    key: 'express',
    label: 'Node.js (Express)',
    load: () =>
      loadFiles({
        'receiver.js': import('../../../../examples/receivers/express/receiver.js?raw'),
        'signature.js': import('../../../../examples/receivers/express/signature.js?raw'),
        'attempts.js': import('../../../../examples/receivers/express/attempts.js?raw'),
      }),
    fill: RECEIVER_TEMPLATES.express,
    run: [
      'npm init --yes && npm pkg set type=module && npm install express@5',
      SECRET_NOTE,
      'export HMAC_SECRET=…',
      'HOST=0.0.0.0 PORT=3002 node receiver.js',
    ].join('\n'),
  },
  {
    key: 'python',
    label: 'Python',
    load: () => loadFiles({ 'receiver.py': import('../../../../examples/receivers/python/receiver.py?raw') }),
    fill: RECEIVER_TEMPLATES.python,
    run: [SECRET_NOTE, 'export HMAC_SECRET=…', 'HOST=0.0.0.0 PORT=3003 python3 receiver.py'].join('\n'),
  },
];

async function loadFiles(files: Record<string, Promise<{ default: string }>>): Promise<ReceiverFile[]> {
  return await Promise.all(
    Object.entries(files).map(async ([name, file]) => ({ name, code: (await file).default })),
  );
}
