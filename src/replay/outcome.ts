/*
 * How a body ended.
 */
export type BodyEnd =
  | { kind: 'returned'; value: unknown }
  | { kind: 'threw'; error: unknown }
  | { kind: 'continued'; input: unknown }
