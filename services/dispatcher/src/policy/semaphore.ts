/** Bounds how many attempts are made in place at the same time, whatever events come to: the others wait in line. */
export interface Room {
  /** Undefined when there is room now. Whoever entered must leave. */
  enter(): Promise<void> | undefined;
  leave(): void;
}

export function createRoom(size: number): Room {
  const line: (() => void)[] = [];
  let first = 0;
  let inside = 0;
  return {
    enter() {
      if (inside < size) {
        inside += 1;
        return undefined;
      }
      return new Promise((resolve) => line.push(resolve));
    },
    leave() {
      const next = line[first];
      if (!next) {
        inside -= 1;
        return;
      }
      first += 1;
      // Shifting a long array for each one that enters would cost its whole length every time.
      if (first > 1_024 || first === line.length) {
        line.splice(0, first);
        first = 0;
      }
      next();
    },
  };
}
