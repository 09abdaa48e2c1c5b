import { Anchor, Paper, ScrollArea, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { artifactsQuery } from '../api/activity.ts';
import { consoleUrl } from '../served-page.ts';
import classes from '../webhook/webhook-facts.module.css';

const LIST_HEIGHT_MAX = 320;

/** The files of a run with links to download them; nothing for a run without files. */
export function RunArtifacts({ accountId, runId }: { accountId: number; runId: number }) {
  const { data: paths = [] } = useQuery(artifactsQuery(accountId, runId));
  if (paths.length === 0) return null;
  return (
    <Paper component="section" withBorder p="md" aria-labelledby="run-artifacts">
      <Title order={2} size="h4" id="run-artifacts" mb="xs">
        Artifacts
      </Title>
      <ScrollArea.Autosize mah={LIST_HEIGHT_MAX}>
        <ul className={classes.plain}>
          {paths.map((path) => (
            <li key={path}>
              <Anchor href={downloadUrl(accountId, runId, path)} download size="sm" className={classes.code}>
                {path}
              </Anchor>
            </li>
          ))}
        </ul>
      </ScrollArea.Autosize>
    </Paper>
  );
}

/** Returns the address of a file. Its path has no character that a URL must escape. */
function downloadUrl(accountId: number, runId: number, path: string): string {
  return consoleUrl(`api/v2/accounts/${accountId}/runs/${runId}/artifacts/${path}`);
}
