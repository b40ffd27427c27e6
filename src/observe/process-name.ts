import { hostname } from 'node:os'

/**
 * The name of this process for operators: the host, which is the pod in Kubernetes, and the pid.
 */
export function processName(): string {
  return `${hostname().slice(0, 80)}/${process.pid}`
}
