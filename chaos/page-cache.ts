// What a loss of power does to files: what was written to the file of the sessions and not
// synced is gone. The replica itself notes what SQLite has synced: see replica-environment.mjs.
import { closeSync, copyFileSync, existsSync, openSync, readFileSync, readSync, statSync, truncateSync } from 'node:fs'

/**
 * The length of the header of a WAL, and where its salts are: https://sqlite.org/fileformat2.html
 */
const [headerLength, saltsAt, saltsLength] = [32, 16, 8]

/**
 * Cuts the WAL to what was synced. The second file, with the numbers of endings and checkpoints, is
 * never synced: it becomes what it was when the process began.
 */
export function losePageCache(file: string): void {
  const [wal, note, numbers] = [`${file}-wal`, `${file}.synced`, `${file}-endings`]
  if (existsSync(`${note}-endings`)) copyFileSync(`${note}-endings`, numbers)
  if ((statSync(wal, { throwIfNoEntry: false })?.size ?? 0) < headerLength) return
  const [salts, length] = readFileSync(note, 'latin1').split(/ +/)
  // A checkpoint has synced what an earlier WAL had.
  truncateSync(wal, saltsIn(wal) === salts ? Number(length) : headerLength)
}

function saltsIn(wal: string): string {
  const descriptor = openSync(wal, 'r')
  const salts = Buffer.alloc(saltsLength)
  readSync(descriptor, salts, 0, saltsLength, saltsAt)
  closeSync(descriptor)
  return salts.toString('hex')
}
