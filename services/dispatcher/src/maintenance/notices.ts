import { type QuarantinedItem, type Queryable, rejectionReason, runStatement } from '@runhook/database';
import { type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { Quarantine } from '../record/quarantine.ts';
import type { DispatcherSettings } from '../settings.ts';

export interface Mail {
  to: string;
  subject: string;
  text: string;
}

export interface Mailer {
  /** Rejects when the server did not accept the mail. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** The sum of these timeouts is below {@link CLAIM_MINUTES}. */
const CONNECT_MS = 10_000;
const SILENCE_MS = 20_000;

/**
 * Loads the mail library on demand, because most dispatchers never send mail.
 * @param from address of the sender, optionally with a name
 */
export async function openMailer(smtpUrl: string, from: string): Promise<Mailer> {
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    dnsTimeout: CONNECT_MS,
  });
  return {
    async send(mail) {
      await transport.sendMail({ from, ...mail });
    },
    close: () => transport.close(),
  };
}

const CLAIM_MINUTES = 10;

interface Notice {
  [column: string]: unknown;
  id: string;
  kind: 'failing' | 'recovered' | 'deactivated';
  email: string;
  /** ISO 8601 UTC, in seconds. */
  occurredAt: string;
  failures: number;
  webhook_id: string;
  webhook: string;
  client_url: string;
  account: string;
  /** Digits. */
  account_id: string;
}

const CLAIM_NOTICE = `
  UPDATE notices n SET claimed_until = now() + interval '${CLAIM_MINUTES} minutes'
  FROM subscriptions s JOIN accounts a ON a.id = s.account_id
  WHERE s.id = n.subscription_id AND n.id = (
    SELECT id FROM notices
    WHERE sent_at IS NULL AND (claimed_until IS NULL OR claimed_until < now())
      AND created_at > now() - interval '1 day'
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING n.id, n.kind, n.email, to_char(n.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS "occurredAt",
    n.failures, s.id AS webhook_id, s.name AS webhook, s.client_url, a.name AS account,
    a.id AS account_id`;

const MARK_SENT = 'UPDATE notices SET sent_at = now() WHERE id = $1';

/**
 * Sends the pending notices, one after another. A dispatcher claims each notice before it sends it, so that only one
 * sends it. When the server is unavailable, or the process is killed meanwhile, the notice is retried after the claim,
 * for a day. A notice that the server rejects is set aside. Returns the number of notices that were sent or set aside.
 * @throws the error of an unavailable mail server; the remaining notices then wait as well
 */
export async function sendNotices(
  database: Queryable,
  mailer: Mailer,
  quarantine: Pick<Quarantine, 'setAside'>,
  stopping?: AbortSignal,
): Promise<number> {
  for (let sent = 0; ; sent++) {
    if (stopping?.aborted) return sent;
    const [notice] = await runStatement<Notice>(database, CLAIM_NOTICE, [], 'claim-notice');
    if (!notice) return sent;
    try {
      await mailer.send(composeMail(notice));
    } catch (error) {
      if (!isMailRejected(error)) throw error;
      await quarantine.setAside([rejectedNotice(notice, error)]);
    }
    await runStatement(database, MARK_SENT, [notice.id], 'note-sent');
  }
}

/** Whether the server permanently rejects this recipient or this mail, but not others. All mails have the same sender. */
function isMailRejected(error: unknown): boolean {
  const {
    code,
    command,
    responseCode = 0,
  } = error as {
    code?: string;
    command?: string;
    responseCode?: number;
  };
  const concernsMail = code === 'EENVELOPE' || code === 'EMESSAGE';
  return concernsMail && command !== 'MAIL FROM' && responseCode >= 500;
}

function rejectedNotice({ id, account_id: accountId }: Notice, error: unknown): QuarantinedItem {
  return { kind: 'notice', accountId: Number(accountId), key: id, reason: rejectionReason(error) };
}

/** Mentions only the server of the endpoint, because its path is often a secret. */
function composeMail(notice: Notice): Mail {
  const { kind, email: to, occurredAt, failures, webhook_id: id, client_url: clientUrl } = notice;
  const webhook = toSingleLine(notice.webhook);
  const endpoint = URL.canParse(clientUrl) ? new URL(clientUrl).origin : 'its endpoint';
  const failed = `${failures} ${failures === 1 ? 'attempt' : 'attempts in a row'} failed since ${occurredAt}.`;
  const details = `Webhook: ${webhook} (${id})\nEndpoint: ${endpoint}\nAccount: ${toSingleLine(notice.account)}\n`;
  switch (kind) {
    case 'failing':
      return {
        to,
        subject: `Webhook "${webhook}" is failing`,
        text: `${details}\n${failed} Failed deliveries can be sent again once the endpoint responds.\n`,
      };
    case 'recovered':
      return {
        to,
        subject: `Webhook "${webhook}" works again`,
        text: `${details}\nAn attempt at ${occurredAt} succeeded. Failed deliveries can be sent again.\n`,
      };
    case 'deactivated':
      return {
        to,
        subject: `Webhook "${webhook}" was switched off`,
        text: `${details}\n${failed} It receives no events until it is switched on again.\n`,
      };
  }
}

/** Sanitizes a name for a mail header, because its owner may have used any characters. */
function toSingleLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

const MAIL_EVERY_MS = 10_000;

interface MailProcess {
  settings: Pick<DispatcherSettings, 'smtpUrl' | 'mailFrom'>;
  lifecycle: Lifecycle;
  stopping: AbortSignal;
  logger: Logger;
}

/** Each dispatcher sends unclaimed notices, separately from other work, so that a hanging mail server delays only mail. */
export async function startMail(
  { settings, lifecycle, stopping, logger }: MailProcess,
  pool: Queryable,
  quarantine: Quarantine,
): Promise<void> {
  const { smtpUrl, mailFrom } = settings;
  if (smtpUrl === undefined || mailFrom === undefined) return;
  const mailer = await openMailer(smtpUrl, mailFrom);
  const send = async () => {
    const sent = await sendNotices(pool, mailer, quarantine, stopping);
    if (sent > 0) logger.info({ sent }, 'e-mail about subscriptions sent or set aside');
  };
  const sending = startPeriodic(MAIL_EVERY_MS, send, (error) =>
    logger.warn({ err: error }, 'e-mail could not be sent'),
  );
  lifecycle.onClose('e-mail', async () => {
    mailer.close();
    void sending.stop();
  });
}
