import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { ActivateBundle, BundleContent, BundleList, BundleView, Digest, EvaluateBundle } from '#contracts'
import { BundlesService } from '#domains/governance/bundles.service'
import type { Principal } from '#domains/identity/principal'
import { ApiRoute, Input } from '../http/api-route.ts'

const ByHash = z.object({ hash: Digest })
type Named = { principal: Principal; params: z.output<typeof ByHash> }

/** What the platform lets every run be, and the pointer to it: moved by people (K8). */
@Controller()
export class BundlesController {
  constructor(private readonly bundles: BundlesService) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/bundles',
    summary: 'Bundles, newest first, and which one is active',
    access: 'admin',
    answer: BundleList,
  })
  list(): Promise<z.output<typeof BundleList>> {
    return this.bundles.list()
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/bundles',
    summary: 'Propose a bundle; it is named by its content and activates nothing',
    access: 'admin',
    body: BundleContent,
    answer: BundleView,
    keep: ({ hash }) => ({ hash }),
    rebuild: (self: BundlesController, _, { hash }) => self.bundles.get(hash),
  })
  propose(@Input() { principal, body }: { principal: Principal; body: BundleContent }): Promise<BundleView> {
    return this.bundles.propose(body, principal.ownerId)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/bundles/{hash}/evaluations',
    summary: 'Accept or reject a bundle; the last word counts',
    access: 'admin',
    params: ByHash,
    body: EvaluateBundle,
    answer: BundleView,
    keep: ({ hash }) => ({ hash }),
    rebuild: (self: BundlesController, _, { hash }) => self.bundles.get(hash),
  })
  evaluate(@Input() { principal, params, body }: Named & { body: EvaluateBundle }): Promise<BundleView> {
    return this.bundles.evaluate(params.hash, body, principal.ownerId)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/bundles/{hash}/activation',
    summary: 'Make an accepted bundle the active one, or go back to an earlier one',
    access: 'admin',
    params: ByHash,
    body: ActivateBundle,
    answer: BundleView,
    keep: ({ hash }) => ({ hash }),
    rebuild: (self: BundlesController, _, { hash }) => self.bundles.get(hash),
  })
  activate(@Input() { principal, params, body }: Named & { body: ActivateBundle }): Promise<BundleView> {
    return this.bundles.activate(params.hash, body, principal.ownerId)
  }
}
