import { useEffect, useRef, useState } from 'react';
import { newWords } from './log-words.ts';

const QUIET_MS = 10_000;

/**
 * "3 new deliveries": said at most every ten seconds, so that a busy log does not talk without end.
 * @param count of what came since the view was opened
 */
export function useAnnouncement(count: number, view: string): string {
  const [words, setWords] = useState('');
  const said = useRef({ view, count, atMs: Number.NEGATIVE_INFINITY });
  useEffect(() => {
    const last = said.current;
    if (last.view !== view) {
      said.current = { ...last, view, count };
      return;
    }
    if (count <= last.count) return;
    const say = () => {
      said.current = { view, count, atMs: performance.now() };
      setWords(newWords(count - last.count));
    };
    const timer = setTimeout(say, Math.max(0, last.atMs + QUIET_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [count, view]);
  return words;
}
