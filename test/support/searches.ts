/**
 * Random searches are short in `npm test` and long in `npm run test:all`, which sets `ALL=1`.
 * Counts and times in the tests are those of the long search.
 */
const isLongSearch = process.env['ALL'] === '1'

/** How many values to try, or how many ms to search. */
export function searchFor(long: number, short = Math.ceil(long / 10)): number {
  return isLongSearch ? long : short
}
