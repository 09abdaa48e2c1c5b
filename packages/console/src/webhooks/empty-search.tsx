import { Button, Paper, Stack, Text, Title } from '@mantine/core';

export function EmptySearch({ search, onClear }: { search: string; onClear: () => void }) {
  return (
    <Paper withBorder p="xl">
      <Stack align="flex-start" gap="sm" role="status">
        <Title order={2} size="h4">
          No webhook found
        </Title>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          No name, endpoint or description has “{search}” in it.
        </Text>
        <Button variant="default" size="xs" onClick={onClear}>
          Clear the search
        </Button>
      </Stack>
    </Paper>
  );
}
