// A consumer of the feed, which feed.long.test.ts kills: appends the ids of a page to a file, then stores the cursor.
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const { FEED_URL = '', FEED_TOKEN = '', FEED_FOLDER = '' } = process.env;
const cursorFile = join(FEED_FOLDER, 'cursor');

for (;;) {
  const after = existsSync(cursorFile) ? readFileSync(cursorFile, 'utf8') : '';
  const url = `${FEED_URL}?${new URLSearchParams({ after, limit: '100', wait: '20' })}`;
  const response = await fetch(url, { headers: { authorization: `Token ${FEED_TOKEN}` } });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const { data, extra } = await response.json();
  appendFileSync(join(FEED_FOLDER, 'ids'), data.map(({ eventId }) => `${eventId}\n`).join(''));
  writeFileSync(`${cursorFile}.new`, extra.pagination.next_after);
  renameSync(`${cursorFile}.new`, cursorFile);
}
