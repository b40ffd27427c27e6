import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find, folderFor, versionOf, type Bed } from '../bed.ts'
import { slowPipe, startProgram, untilListening } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'

/**
 * nginx as a plain proxy: no sign-in, three fixed headers, persistent connections to the upstream,
 * no access log.
 */
export const nginx: Contender = {
  name: 'nginx',
  title: 'nginx, no sign-in',
  signsIn: false,
  can: new Set(['tls', 'http2', 'websockets', 'workers']),
  missing: () => (find('nginx') ? undefined : 'nginx is not installed'),
  version: () => versionOf('nginx', ['-v'], /nginx\/(\S+)/),
  runsWith: ({ workers }) => `\`worker_processes ${workers}\``,
  start: run,
}

async function run(bed: Bed, setting: Setting): Promise<Listening> {
  const folder = folderFor(bed, `nginx-${setting.port}`)
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name), { recursive: true })
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration(bed, setting, folder))
  const program = startProgram({
    command: find('nginx') as string,
    args: ['-p', folder, '-c', file, '-e', join(folder, 'error.log')],
    cpus: setting.cpus,
    logFile: join(folder, 'output.log'),
  })
  await untilListening(setting.port)
  return program
}

function configuration(bed: Bed, { port, tls, workers, logsTo }: Setting, folder: string): string {
  const reuse = workers > 1 ? ' reuseport' : ''
  const secure = tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};` : ''
  return `daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes ${workers};
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
worker_rlimit_nofile 65536;
events { worker_connections 32768; }
http {
  access_log ${logsTo === undefined ? 'off' : slowPipe(join(folder, 'access'))};
  keepalive_requests 100000000;
  keepalive_timeout 300s;
  client_max_body_size 0;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  proxy_max_temp_file_size 0;
  proxy_buffers 16 16k;
  proxy_request_buffering off;
  proxy_read_timeout 1h;
  map $http_upgrade $onward_connection { default upgrade; '' ''; }
  upstream application { server ${bed.upstream}; keepalive 300; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port}${tls ? ' ssl http2' : ''}${reuse} backlog=4096;
    ${secure}
    location / {
      proxy_pass http://application;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $onward_connection;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Auth-Email alice@idp.example;
      proxy_set_header X-Auth-Sub alice;
      proxy_set_header X-Auth-Name "Alice Example";
    }
  }
}
`
}
