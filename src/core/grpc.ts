import { ownMember } from './json.ts'

/** The status codes of gRPC that the gateway itself sends. */
export const grpcStatuses = {
  ok: 0,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

export type GrpcStatus = (typeof grpcStatuses)[keyof typeof grpcStatuses]

const byHttpStatus: Readonly<Record<number, GrpcStatus>> = {
  400: grpcStatuses.invalidArgument,
  401: grpcStatuses.unauthenticated,
  403: grpcStatuses.permissionDenied,
  404: grpcStatuses.unimplemented,
  405: grpcStatuses.unimplemented,
  408: grpcStatuses.deadlineExceeded,
  413: grpcStatuses.resourceExhausted,
  415: grpcStatuses.invalidArgument,
  417: grpcStatuses.invalidArgument,
  421: grpcStatuses.unimplemented,
  429: grpcStatuses.resourceExhausted,
  431: grpcStatuses.resourceExhausted,
  502: grpcStatuses.unavailable,
  503: grpcStatuses.unavailable,
  504: grpcStatuses.deadlineExceeded,
}

/** The status of gRPC for a refusal with a status of HTTP. */
export function grpcStatusFor(httpStatus: number): GrpcStatus {
  return byHttpStatus[httpStatus] ?? grpcStatuses.internal
}

/** The fields that end a call of gRPC. */
export function grpcFields(status: GrpcStatus, message: string): { 'grpc-status': string; 'grpc-message': string } {
  return { 'grpc-status': String(status), 'grpc-message': encodeURIComponent(message) }
}

const timeout = /^(\d{1,8})([HMSmun])$/
const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/**
 * How long a client waits for a call, in ms, at least 1: `grpc-timeout`. `Infinity`: it does not
 * say.
 */
export function grpcTimeoutMs(value: unknown): number {
  const [, number, unit = ''] = (typeof value === 'string' && timeout.exec(value)) || []
  return number === undefined ? Infinity : Math.max(Number(number) * (ownMember(unitMs, unit) ?? Infinity), 1)
}
