import type { ComponentProps, CSSProperties, ReactNode } from 'react';
import classes from './table.module.css';

export const tableClasses = classes;

interface TableProps extends ComponentProps<'table'> {
  /** Padding above and below each cell, in pixels. */
  verticalSpacing?: number;
  /** Whether the row under the pointer is highlighted. */
  highlightOnHover?: boolean;
  /** Whether the headings stay visible while the rows are scrolled. */
  stickyHeader?: boolean;
}

/** A table of plain elements: a log has hundreds of rows, and components of the library are slow to render. */
export function Table({
  className = '',
  verticalSpacing = 7,
  highlightOnHover = false,
  stickyHeader = false,
  ...table
}: TableProps) {
  return (
    <table
      {...table}
      className={`${classes.table} ${className}`}
      data-highlight={highlightOnHover}
      data-sticky={stickyHeader}
      style={{ '--vertical-spacing': `${verticalSpacing}px` } as CSSProperties}
    />
  );
}

interface TableScrollProps {
  /** Minimum width in pixels, below which the table scrolls sideways. */
  minWidth: number;
  maxHeight?: number;
  /** Must be 0 if no element of the table is focusable, so that it can be scrolled by keyboard. */
  tabIndex?: number;
  children: ReactNode;
}

export function TableScroll({ minWidth, maxHeight, tabIndex, children }: TableScrollProps) {
  return (
    <div style={{ overflow: 'auto', maxHeight }} tabIndex={tabIndex}>
      <div style={{ minWidth }}>{children}</div>
    </div>
  );
}
