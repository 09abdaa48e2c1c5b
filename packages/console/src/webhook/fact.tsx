import type { ReactNode } from 'react';
import classes from './webhook-facts.module.css';

interface FactProps {
  name: string;
  width?: 'quarter' | 'half' | 'full';
  children: ReactNode;
}

/** A name and its value in a `<dl>`. */
export function Fact({ name, width = 'quarter', children }: FactProps) {
  return (
    <div className={classes.fact} data-width={width}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
