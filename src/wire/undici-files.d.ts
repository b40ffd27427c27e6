// The files of undici that undici.ts uses. Its types are those of its main module.
declare module 'undici/lib/api/api-connect.js' {
  /** The main module adds it to every dispatcher. */
  const connect: import('undici').Dispatcher['connect']
  export default connect
}

declare module 'undici/lib/api/api-request.js' {
  /** The main module adds it to every dispatcher. */
  const request: import('undici').Dispatcher['request']
  export default request
}

declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici'
}

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici'
}

declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici'
}

declare module 'undici/lib/dispatcher/proxy-agent.js' {
  export { ProxyAgent as default } from 'undici'
}
