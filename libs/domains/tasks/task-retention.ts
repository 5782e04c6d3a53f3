import type { TaskRow } from '#kernel/ports/task-store'
import { isOverTask } from '#kernel/tasks/task-state'
import type { TaskDeps } from './deps.ts'

/**
 * Forgets what tasks held that were to be kept `until_done`: what they were about, what was done and what was made of it are erased together
 * once the task is over and nothing that it handed on is under way. Digests stay, and so do chain and evidence (decision 13).
 */
export class TaskRetention {
  readonly #deps: Pick<TaskDeps, 'unitOfWork' | 'store' | 'contents'>

  constructor(deps: Pick<TaskDeps, 'unitOfWork' | 'store' | 'contents'>) {
    this.#deps = deps
  }

  /** Tasks whose texts are due to be erased, oldest first. */
  due(limit: number): Promise<TaskRow[]> {
    return this.#deps.store.forgettable(limit)
  }

  /** Twice is as once; a task that is not over, or that is to be kept, stays as it is. Not inside a unit of work. */
  async forget(taskId: string): Promise<void> {
    const { unitOfWork, store, contents } = this.#deps
    await unitOfWork.run(async () => {
      const task = await store.lock(taskId)
      if (!task || task.retention !== 'until_done' || !isOverTask(task.status)) return
      // What was handed on is made of these very texts.
      if ((await store.openChildren(taskId)).length > 0) return
      await contents.erase({ ids: await store.contentIds(taskId), cause: 'task_over' })
    })
  }
}
