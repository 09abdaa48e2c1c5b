import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** Returns the ACL rules of the `redis-cli` call in docs/security.md, as a shell parses them; the first is `reset`. */
export async function documentedRules(): Promise<string[]> {
  const page = await readFile(new URL('../../../docs/security.md', import.meta.url), 'utf8');
  const command = /```sh\n(redis-cli ACL SETUSER[^`]+)```/.exec(page)?.[1] ?? '';
  const shell = command.replace('redis-cli', "printf '%s\\0'");
  const printed = await new Promise<string>((resolve, reject) => {
    execFile('sh', ['-c', shell], (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
  const [, , , ...rules] = printed.split('\0').slice(0, -1);
  return rules;
}
