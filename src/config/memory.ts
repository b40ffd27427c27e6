import { totalmem } from 'node:os'

/** What a process takes without clients, in bytes (measured, Node.js 20 and 24). */
const processBytes = 48 * 1024 * 1024
/** What a worker needs besides, in bytes: for sessions, clients and garbage. */
const leastFreeBytes = 16 * 1024 * 1024

/** The limit of the container (cgroup), or the memory of the machine, in bytes. */
function memoryLimit(): number {
  // Without a limit it is 0, or more than the memory of the machine.
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** The memory that each serving process may use beside what it takes without clients, in bytes. */
export function freeMemory(workers: number, memory: number = memoryLimit()): number {
  return Math.max((memory - processes(workers) * processBytes) / workers, leastFreeBytes)
}

/** How many of the workers have enough memory. At least one. */
export function workersWithin(wanted: number, memory: number = memoryLimit()): number {
  let workers = wanted
  while (workers > 1 && memory < processes(workers) * processBytes + workers * leastFreeBytes) workers -= 1
  return workers
}

/** How many processes there are: several workers have a primary process. */
function processes(workers: number): number {
  return workers > 1 ? workers + 1 : 1
}
