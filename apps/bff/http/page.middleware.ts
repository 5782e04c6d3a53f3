import { existsSync } from 'node:fs'
import { join } from 'node:path'
import express from 'express'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { stateOf } from './request-state.ts'

/** Paths that are the API's own, whatever the page has. */
const ownPaths = /^\/(v1|health|docs|metrics|openai)(\/|$)/

const START_FILE = 'index.html'

/** Vite names what it builds by its content. */
const hashedAsset = /\/assets\/.+-[\w-]{8,}\.\w+$/

/**
 * The built page: its files, and for every other path without a dot the page itself, which knows its own routes. `folder` is looked at
 * when asked, so that a page built meanwhile is served.
 */
export function pageMiddleware(folder: string): RequestHandler {
  const files = express.static(folder, {
    index: false,
    redirect: false,
    fallthrough: true,
    setHeaders: (response, path) => {
      response.setHeader('Cache-Control', hashedAsset.test(path.replaceAll('\\', '/')) ? 'public, max-age=31536000, immutable' : 'no-cache')
    },
  })
  return (request: Request, response: Response, next: NextFunction) => {
    const isReading = request.method === 'GET' || request.method === 'HEAD'
    if (!isReading || ownPaths.test(request.path)) return next()
    stateOf(request).route = 'page'
    if (request.path !== '/' && request.path.includes('.')) return files(request, response, next)
    if (!existsSync(join(folder, START_FILE))) return next()
    response.sendFile(START_FILE, { root: folder, cacheControl: false, headers: { 'Cache-Control': 'no-cache' } }, (error) => {
      if (error && !response.headersSent) next(error)
    })
  }
}
