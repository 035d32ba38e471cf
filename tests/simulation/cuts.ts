/*
 * Cuts: programs that are a little smaller, for shrinking.
 */
import type { Leaf, Node, Program } from './programs.ts'

/** Programs that are one cut smaller. */
export function cuts(program: Program): Program[] {
  const smaller = cutNode(program.root).map((root) => ({ ...program, root }))
  return program.rounds > 0 ? [{ ...program, rounds: 0 }, ...smaller] : smaller
}

function cutNode(node: Node): Node[] {
  if (node.t === 'try') {
    const { catch: caught, finally: last } = node
    return [
      node.body,
      ...(caught ? [{ ...node, catch: undefined }] : []),
      ...(last ? [{ ...node, finally: undefined }] : []),
      ...cutNode(node.body).map((body) => ({ ...node, body })),
    ]
  }
  if ('of' in node) {
    const { of } = node
    const without = (i: number) => ({ ...node, of: of.filter((_, j) => j !== i) })
    const deeper = of.flatMap((part, i) =>
      cutNode(part).map((cut) => ({ ...node, of: of.map((other, j) => (j === i ? cut : other)) }))
    )
    const shorter = of.length > 1 && node.t !== 'cond' ? of.map((_, i) => without(i)) : []
    return [...of, ...shorter, ...deeper]
  }
  return simpler(node)
}

function simpler(leaf: Leaf): Leaf[] {
  const plain: Leaf[] = []
  if ('program' in leaf && leaf.program && leaf.t !== 'spawn' && leaf.t !== 'join') {
    for (const program of cuts(leaf.program)) plain.push({ ...leaf, program })
  }
  if (leaf.t === 'fan' && leaf.size > 1) plain.push({ ...leaf, size: leaf.size - 1 })
  if (leaf.t === 'webhook' && leaf.between) plain.push({ ...leaf, between: undefined })
  if ('undo' in leaf && leaf.undo) plain.push({ ...leaf, undo: undefined })
  if ('tries' in leaf && leaf.tries > 1) plain.push({ ...leaf, tries: 1 })
  if ('backoffMs' in leaf && leaf.backoffMs > 0) plain.push({ ...leaf, backoffMs: 0 })
  return plain
}
