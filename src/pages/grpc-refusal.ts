import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { grpcFields, grpcStatusFor } from '../core/grpc.ts'
import { ownHeaders, type Response } from '../http/response.ts'
import { type ProblemOptions, refusalHeaders } from './problem.ts'

/**
 * The response to a refused call of gRPC or gRPC-Web: its status is in the head, and it has no
 * content (Trailers-Only).
 */
export function grpcRefusal(code: ErrorCode, type: string, options: ProblemOptions): Response {
  const { status, text } = errorRow(code)
  return {
    status: 200,
    headers: {
      'Content-Type': type,
      ...ownHeaders,
      ...grpcFields(grpcStatusFor(status), text),
      ...refusalHeaders(status, options),
    },
    body: '',
    code,
  }
}
