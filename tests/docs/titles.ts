/*
 * The tests of a file under their titles, as the indexes write them.
 */

/** A title as an index writes it: what a loop or a data set puts in is left out. */
const plain = (title: string) => title.replaceAll(/\$\{.*?\}|\{\$self\}/g, '…')

/** The tests of a spec file in order: titles, and the text of each up to the next one. */
export function testsIn(source: string): { title: string; text: string }[] {
  const [, ...texts] = source.split(/^ *test\((?=\s*['`])/m)
  return texts.map((text) => {
    const [, , title] = /^\s*(['`])(.+?)\1\s*[,)]/.exec(text) ?? []
    return { title: plain(title), text }
  })
}

/** What a cell of an index lists: each test as `file "title"`, one a line. */
export const listedIn = (cell: string): { file: string; title: string }[] =>
  Array.from(cell.matchAll(/`([^`]+)` "(.+?)"(?=<br>| *$)/g), ([, file, title]) => ({ file, title }))
