import { Button, VisuallyHidden } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconCopy } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { copyText } from './copy-text.ts';

const FEEDBACK_MS = 2_500;
const OUTCOMES = {
  idle: { icon: IconCopy, words: null },
  copied: { icon: IconCheck, words: 'Copied' },
  refused: { icon: IconAlertTriangle, words: 'Copy it by hand' },
} as const;

interface CopyButtonProps {
  /** Asked for when it is pressed. */
  value: string | (() => string);
  /** "Copy", "Copy as curl". */
  label?: string;
  /** What is copied, for those who do not see what stands beside it: "the secret". */
  what?: string;
  size?: 'compact-xs' | 'compact-sm' | 'xs' | 'sm';
  variant?: 'default' | 'subtle' | 'filled' | 'light';
  onCopied?: () => void;
}

/** Copies and says so, on the button and to screen readers. */
export function CopyButton({
  value,
  label = 'Copy',
  what,
  size = 'compact-sm',
  variant = 'default',
  onCopied,
}: CopyButtonProps) {
  const [outcome, setOutcome] = useState<keyof typeof OUTCOMES>('idle');
  useEffect(() => {
    if (outcome === 'idle') return;
    const timer = setTimeout(() => setOutcome('idle'), FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const { icon: Icon, words } = OUTCOMES[outcome];

  async function copy() {
    const isCopied = await copyText(typeof value === 'string' ? value : value());
    setOutcome(isCopied ? 'copied' : 'refused');
    if (isCopied) onCopied?.();
  }

  return (
    <>
      <Button
        size={size}
        variant={variant}
        onClick={() => void copy()}
        leftSection={<Icon size={14} aria-hidden />}
        style={{ flexShrink: 0 }}
      >
        {words ?? label}
        {words === null && what !== undefined && <VisuallyHidden> {what}</VisuallyHidden>}
      </Button>
      <VisuallyHidden role="status">
        {outcome === 'copied' && `Copied ${what ?? ''}`}
        {outcome === 'refused' &&
          'The browser did not let it be copied. Select the text and copy it by hand.'}
      </VisuallyHidden>
    </>
  );
}
