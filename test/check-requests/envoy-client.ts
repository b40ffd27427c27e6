import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Client, credentials, loadPackageDefinition, type ServiceError } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

export interface HeaderOption {
  readonly header: { readonly key: string; readonly value: string; readonly raw_value: Buffer }
  readonly append_action: number
}

/** A `CheckResponse` as proto-loader decodes it. */
export interface CheckResponse {
  readonly status: { readonly code: number }
  readonly denied_response?: {
    readonly status: { readonly code: number }
    readonly headers: readonly HeaderOption[]
    readonly body: string
  }
  readonly ok_response?: {
    readonly headers: readonly HeaderOption[]
    readonly headers_to_remove: readonly string[]
    readonly response_headers_to_add: readonly HeaderOption[]
  }
}

export interface EnvoyClient {
  call(method: 'Check' | 'Other', request: object): Promise<CheckResponse>
}

const file = fileURLToPath(new URL('ext-authz.proto', import.meta.url))

/** A client with the messages of Envoy. */
export function envoyClient(t: TestContext, port: number): EnvoyClient {
  const definition = loadSync(file, { keepCase: true, defaults: false, arrays: true })
  const services = loadPackageDefinition(definition) as unknown as {
    envoy: { service: { auth: { v3: { Authorization: new (...args: unknown[]) => Client } } } }
  }
  const client = new services.envoy.service.auth.v3.Authorization(`127.0.0.1:${port}`, credentials.createInsecure())
  t.after(() => client.close())
  const call: EnvoyClient['call'] = (method, request) =>
    new Promise((resolve, reject) => {
      const unary = (client as unknown as Record<string, (...args: unknown[]) => void>)[method]?.bind(client)
      unary?.(request, (error: ServiceError | null, response: CheckResponse) =>
        error ? reject(error) : resolve(response),
      )
    })
  return { call }
}
