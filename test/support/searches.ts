/**
 * Random searches are short in `npm test` and long in `npm run test:all`, which sets `ALL=1`.
 * Counts and times in the tests are those of the long search.
 */
/** Whether this is `npm run test:all`. */
export const isLongSearch = process.env['ALL'] === '1'

/** The number of values to try, or the time to search in ms. */
export function searchFor(long: number, short = Math.ceil(long / 10)): number {
  return isLongSearch ? long : short
}
