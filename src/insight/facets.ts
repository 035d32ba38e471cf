/*
 * Facets: which axes there are.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { RunValueAxis } from '../types/query.ts'

const AXES: Record<RunValueAxis, true> = {
  workflow: true,
  tag: true,
  namespace: true,
  origin: true,
  workflowVersion: true,
  attributeKey: true,
}

/** The axis, if it is one: a caller may have it from a URL. */
export function checkedAxis(axis: RunValueAxis): RunValueAxis {
  if (Object.hasOwn(AXES, axis)) return axis
  const known = Object.keys(AXES).join(', ')
  throw new InvalidArgumentError('runValueFacets: the axis', `must be one of ${known}`)
}
