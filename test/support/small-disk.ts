import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

export interface SmallDisk {
  readonly folder: string
  /** Fills it to the last byte. */
  fill(): void
  free(): void
  remount(how: 'ro' | 'rw'): void
}

/** A small disk in memory; `undefined` when the test may not mount one, because it is not root. */
export function smallDisk(t: TestContext): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-small-disk-'))
  const mount = (...args: string[]) => spawnSync('mount', args).status === 0
  const isMounted = mount('-t', 'tmpfs', '-o', 'size=600k', 'tmpfs', folder)
  t.after(() => {
    if (isMounted) spawnSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true })
  })
  if (!isMounted) return undefined
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill: () => void spawnSync('sh', ['-c', `cat /dev/zero >> '${ballast}'`]),
    free: () => rmSync(ballast),
    remount: (how) => assert.ok(mount('-o', `remount,${how}`, folder)),
  }
}
