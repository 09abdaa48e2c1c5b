import { Button } from '@mantine/core';
import { IconArrowUp } from '@tabler/icons-react';
import classes from './delivery-rows.module.css';
import { newWords } from './log-words.ts';

/** Stays in sight while the reader is further down. */
export function WaitingButton({ count, onShow }: { count: number; onShow: () => void }) {
  if (count === 0) return null;
  return (
    <Button
      size="compact-sm"
      className={classes.waiting ?? ''}
      leftSection={<IconArrowUp size={14} aria-hidden />}
      onClick={onShow}
    >
      Show {newWords(count)}
    </Button>
  );
}
