import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { reason } from '../../src/entries/doctor.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

/** File systems over a network, by the numbers of statfs(2). */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
])
const leastFreeBytes = 100 * 1024 * 1024

/** The findings about the file of `session.store.file`. The gateway may be using it. */
export function sessionFileFindings(file: string): Finding[] {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    return [
      fault('session_file.folder', `${file} is a folder`, {
        why: 'the gateway does not start without the file of its sessions',
        todo: `name a file in session.store.file, such as ${file}/sessions.db`,
      }),
    ]
  const folder = dirname(file)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    const { type, bavail, bsize } = statfsSync(folder)
    return found(
      ok(
        'session_file.folder',
        `${folder} can be written; a restart keeps the sessions, and only one process is possible`,
      ),
      permissionFinding(file),
      fileSystemFinding(folder, type),
      spaceFinding(folder, bavail * bsize),
    )
  } catch (error) {
    return [
      fault('session_file.folder', `${folder} cannot be written: ${reason(error)}`, {
        why: 'the gateway does not start without the file of its sessions',
        todo: 'create the folder for the user that the gateway runs as, or mount a volume there',
      }),
    ]
  }
}

function permissionFinding(file: string): Finding | undefined {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  if ((mode & 0o077) === 0) return undefined
  return fault('session_file.permissions', `other users may open ${file}`, {
    why: 'a user who can change it can bring back sessions that have ended',
    todo: `chmod 600 ${file}, for the user that the gateway runs as`,
  })
}

function fileSystemFinding(folder: string, type: number): Finding | undefined {
  const name = networkFileSystems.get(type)
  if (name === undefined) return undefined
  return fault('session_file.file_system', `${folder} is on ${name}`, {
    why: 'SQLite needs locks that file systems over a network do not reliably have, so sessions could be damaged',
    todo: 'use a local disk, or set session.store to Redis',
  })
}

function spaceFinding(folder: string, freeBytes: number): Finding | undefined {
  if (freeBytes >= leastFreeBytes) return undefined
  return warning('session_file.space', `${folder} has ${Math.floor(freeBytes / 1024 / 1024)} MB of free space`, {
    why: 'on a full disk, sign-ins and sign-outs get 503',
    todo: 'make space, or use a larger volume',
  })
}
