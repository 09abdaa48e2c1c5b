import type { ComponentProps, CSSProperties, ReactNode } from 'react';
import classes from './table.module.css';

export const tableClasses = classes;

interface TableProps extends ComponentProps<'table'> {
  /** Above and below each cell, in pixels. */
  verticalSpacing?: number;
  /** The row under the pointer is told from the others. */
  highlightOnHover?: boolean;
  /** The headings stay while the rows are scrolled. */
  stickyHeader?: boolean;
}

/** Rows of plain cells: a log has hundreds, and each component of the library would be drawn for every one. */
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
  /** In pixels: a table that has no room for it is scrolled sideways. */
  minWidth: number;
  maxHeight?: number;
  /** 0 where nothing in the table takes the focus, so that it can be scrolled by keyboard. */
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
