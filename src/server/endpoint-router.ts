import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type EndpointAtPath, endpointsOf, maxFormBytes } from '../config/endpoints.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { EndpointContent } from '../http/endpoint-request.ts'
import { hasBody } from '../http/request-body.ts'
import { type Incoming, type Response, writeResponse } from '../http/response.ts'
import { type Refusals, endRecord } from './responses.ts'

/** Makes the responses that the router sends. */
export interface EndpointResponses {
  respond(at: EndpointAtPath, incoming: Incoming, content: EndpointContent): Promise<Response>
  /** No endpoint has this path and method. */
  notFound(incoming: Incoming): Response
  failed(error: unknown, incoming: Incoming): Response
}

/**
 * Finds the endpoint of a request, reads the content of the request, and sends the response. It
 * never listens: requests of both kinds of connections are handed to it.
 */
export class EndpointRouter {
  readonly #app: FastifyInstance
  readonly #refusals: Refusals

  private constructor(app: FastifyInstance, refusals: Refusals) {
    this.#app = app
    this.#refusals = refusals
  }

  static async create(
    config: GatewayConfig,
    responses: EndpointResponses,
    refusals: Refusals,
  ): Promise<EndpointRouter> {
    const failed = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      send(reply, responses.failed(error, incomingOf(request)))
    const app = Fastify({
      logger: false,
      bodyLimit: maxFormBytes,
      exposeHeadRoutes: false,
      trustProxy: false,
      frameworkErrors: (error, request, reply) => void failed(error, request, reply),
      // The endpoints have no schemas. Fastify would load two compilers of schemas.
      schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    })
    readContent(app)
    app.setErrorHandler(failed)
    app.setNotFoundHandler((request, reply) => send(reply, responses.notFound(incomingOf(request))))
    for (const at of endpointsOf(config))
      app.route({
        method: [...at.endpoint.methods],
        url: at.path,
        handler: async (request, reply) => {
          const content = (request.body as EndpointContent | undefined) ?? {}
          return send(reply, await responses.respond(at, incomingOf(request), content))
        },
      })
    await app.ready()
    return new EndpointRouter(app, refusals)
  }

  /** Serves a request by its method and canonical target. */
  serve(incoming: Incoming): void {
    endRecord(incoming)
    if (hasBody(incoming.req)) this.#refusals.limitFormTime(incoming)
    const message = new RoutedMessage(incoming) as unknown as IncomingMessage
    this.#app.routing(message, incoming.res as ServerResponse)
  }
}

/** The parts of a request that Fastify uses. */
class RoutedMessage {
  readonly incoming: Incoming
  readonly method: string
  readonly url: string

  constructor(incoming: Incoming) {
    const { method, target } = incoming.facts
    this.incoming = incoming
    this.method = method
    this.url = target.path + target.query
  }

  get headers() {
    return this.incoming.req.headers
  }

  get socket() {
    return this.incoming.req.socket
  }

  on(event: 'data', listener: (part: Buffer) => void): this {
    this.incoming.req.on(event, listener)
    return this
  }

  removeListener(event: 'data', listener: (part: Buffer) => void): this {
    this.incoming.req.off(event, listener)
    return this
  }

  resume(): this {
    this.incoming.req.resume()
    return this
  }
}

function incomingOf({ raw }: Pick<FastifyRequest, 'raw'>): Incoming {
  return (raw as unknown as RoutedMessage).incoming
}

/** Sends the response and writes its facts to the record of the request. */
function send(reply: FastifyReply, response: Response): FastifyReply {
  const incoming = incomingOf(reply.request)
  const { record } = incoming
  reply.hijack()
  if (response.code !== undefined) record.code = response.code
  if (response.stream !== undefined) record.markAsStream('event_stream')
  record.bytes = writeResponse(incoming, response)
  return reply
}

/** Takes the place of a compiler of schemas. A schema for an endpoint would be an error. */
function noSchemas(): never {
  throw new Error('The endpoints have no schemas.')
}

/** RFC 8417 §2.3. */
const securityEventType = 'application/secevent+jwt'

/** Other content than that of an endpoint is read within the limit, as an empty form. */
function readContent(app: FastifyInstance): void {
  const read = (type: string, contentOf: (text: string) => EndpointContent) =>
    app.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) => done(null, contentOf(String(body))))
  app.removeAllContentTypeParsers()
  read('application/x-www-form-urlencoded', (form) => ({ form }))
  read(securityEventType, (securityEvent) => ({ securityEvent }))
  read('*', () => ({}))
}
