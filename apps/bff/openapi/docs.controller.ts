import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { LingtaiError } from '#contracts'
import { ApiRoute, Input } from '../http/api-route.ts'
import { fileAnswer } from '../http/route-shapes.ts'
import type { SentFile } from '../http/route-shapes.ts'
import { docsPage, readDocsAsset } from './docs-page.ts'
import type { OpenApiDocument } from './document.ts'

/** The API document, made when it is first asked for: making it would be a good part of a start. */
export class ApiDocument {
  readonly #make: () => OpenApiDocument
  #made: OpenApiDocument | undefined

  constructor(make: () => OpenApiDocument) {
    this.#make = make
  }

  get value(): OpenApiDocument {
    this.#made ??= this.#make()
    return this.#made
  }
}

const DocsAsset = z.object({ file: z.string().regex(/^[a-z-]{1,40}\.(css|js|png)$/) })

/** The API document, for people and for machines; every file of it comes from this server. */
@Controller()
export class DocsController {
  constructor(private readonly document: ApiDocument) {}

  @ApiRoute({
    method: 'GET',
    path: '/docs/openapi.json',
    summary: 'The API as an OpenAPI 3.1 document',
    access: 'public',
    answer: z.record(z.string(), z.unknown()),
  })
  async openApi(): Promise<Record<string, unknown>> {
    return this.document.value
  }

  @ApiRoute({ method: 'GET', path: '/docs', summary: 'The API document as a page', access: 'public', answer: fileAnswer('text/html') })
  async page(): Promise<SentFile> {
    return docsPage
  }

  @ApiRoute({
    method: 'GET',
    path: '/docs/assets/{file}',
    summary: 'A file of the document page',
    access: 'public',
    params: DocsAsset,
    answer: fileAnswer('text/css', 'text/javascript', 'image/png'),
  })
  async asset(@Input() { params }: { params: { file: string } }): Promise<SentFile> {
    const file = await readDocsAsset(params.file)
    if (!file) throw new LingtaiError('not_found')
    return file
  }
}
