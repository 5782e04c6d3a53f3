import 'reflect-metadata'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import type { NestExpressApplication } from '@nestjs/platform-express'
import express from 'express'
import { LingtaiError } from '#contracts'
import { AppModule, controllersOf } from '../app.module.ts'
import type { System } from '../composition/compose-system.ts'
import { HttpMetrics } from '../operations/http-metrics.ts'
import { routesOf } from './api-route.ts'
import { AuthGuard, DEFAULT_LIMITS } from './auth.guard.ts'
import type { Limits } from './auth.guard.ts'
import { baseUrlOf } from './base-url.ts'
import { edgeMiddleware } from './edge.middleware.ts'
import { NestLogger } from './nest-logger.ts'
import { pageMiddleware } from './page.middleware.ts'
import { problemOf } from './problem.ts'
import { ProblemFilter } from './problem.filter.ts'
import { RouteInterceptor } from './route.interceptor.ts'

export type HttpServerOptions = {
  /** The whole API, or health and metrics alone (a worker). */
  api?: boolean
  /** The built page. */
  pageFolder?: string
  limits?: Partial<Limits>
  /** Whether an answer that is not what the document says is an error; for tests. */
  checksAnswers?: boolean
}

export type HttpServer = {
  /** As people open it: `http://127.0.0.1:3000`. */
  url: string
  /** Stops listening, lets what is being answered end for a while, then cuts what is left. */
  close(): Promise<void>
}

/** How long answers may take after the stop before they are cut. */
const GRACE_MS = 5_000

/** Serves a system over HTTP. Throws ListenError where the address or port cannot be had. */
export async function startHttpServer(system: System, options: HttpServerOptions = {}): Promise<HttpServer> {
  const { config, logger, ids, clock, identity } = system
  const api = options.api ?? true
  const web = express()
  web.disable('x-powered-by')
  web.set('etag', false)
  const app = await NestFactory.create<NestExpressApplication>(AppModule.of(system, { api }), new ExpressAdapter(web), {
    bodyParser: false,
    logger: new NestLogger(logger),
    abortOnError: false,
  })
  app.use(edgeMiddleware({ ids, bind: config.bind, metrics: new HttpMetrics(system.metrics) }))
  if (api && options.pageFolder !== undefined) app.use(pageMiddleware(options.pageFolder))
  app.useGlobalGuards(new AuthGuard({ authenticator: identity.authenticator, clock, limits: { ...DEFAULT_LIMITS, ...options.limits } }))
  app.useGlobalInterceptors(
    new RouteInterceptor({
      idempotency: system.idempotency,
      controllerOf: (type) => app.get<unknown>(type, { strict: false }),
      checksAnswers: options.checksAnswers ?? false,
    }),
  )
  app.useGlobalFilters(new ProblemFilter({ logger, routes: routesOf(controllersOf({ api })) }))
  await app.init()

  // A server of our own: Nest's would be made before the settings below.
  const server = createServer({ requestTimeout: 120_000, headersTimeout: 20_000, keepAliveTimeout: 20_000, noDelay: true }, web)
  server.on('clientError', answerGarbage)
  await listen(server, config)
  const { port } = server.address() as AddressInfo
  system.listening.add(port)
  return {
    url: baseUrlOf(config.bind, port),
    close: async () => {
      system.lifecycle.beginStopping()
      await closeServer(server)
      system.listening.delete(port)
      await app.close()
    },
  }
}

/** The address or port cannot be listened on. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  readonly address: string
  readonly port: number

  constructor({ address, port, cause }: { address: string; port: number; cause: NodeJS.ErrnoException }) {
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE: `port ${port} is in use by another program; stop it, or set PORT to a free one`,
      EACCES: `port ${port} may not be used by this user; set PORT to one over 1023`,
      EADDRNOTAVAIL: `${address} is no address of this machine; correct LINGTAI_HOST`,
    }
    super(reasons[cause.code ?? ''] ?? `${address}:${port} cannot be listened on: ${cause.message}`, { cause })
    this.address = address
    this.port = port
  }
}

function listen(server: Server, { port, bind: { address } }: System['config']): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => reject(new ListenError({ address, port, cause }))
    server.once('error', onError)
    server.listen(port, address, () => {
      server.off('error', onError)
      resolve()
    })
  })
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), GRACE_MS)
  await closed.finally(() => clearTimeout(timer))
}

const garbageStatus: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Bytes that are no HTTP request: there is no request to answer, so the socket itself is. */
function answerGarbage(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = garbageStatus[error.code ?? ''] ?? '400 Bad Request'
  const refusal = new LingtaiError('malformed_body', 'This is no HTTP request that can be read.', {
    errors: [{ path: 'request', message: 'cannot be read' }],
  })
  const body = JSON.stringify({ ...problemOf(refusal, ''), status: Number(status.slice(0, 3)) })
  const headers = ['Content-Type: application/problem+json', `Content-Length: ${Buffer.byteLength(body)}`, 'Connection: close']
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
}
