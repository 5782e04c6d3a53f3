import { Controller } from '@nestjs/common'
import type { z } from 'zod'
import {
  ActionList,
  ActionView,
  AttemptList,
  AttemptView,
  CommitTask,
  CompleteTask,
  CompletionView,
  CreateTask,
  EvidencePackage,
  RuntimeList,
  StartAttempt,
  SubmitAction,
  TaskListQuery,
  TaskPage,
  TaskView,
} from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { parseCursor } from '#domains/mirror-tree/tree.service'
import { TaskService } from '#domains/tasks/task.service'
import { ApiRoute, Input } from '../http/api-route.ts'

type Own = { principal: Principal; params: { id: string } }

/** Delegated work: asked for, carried out under control, verified, committed by its owner. */
@Controller()
export class TasksController {
  constructor(private readonly tasks: TaskService) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/task-runtimes',
    summary: 'Who can carry an attempt out, and what each can do',
    access: 'read',
    answer: RuntimeList,
  })
  async runtimes(): Promise<z.output<typeof RuntimeList>> {
    return {
      items: this.tasks.runtimes.map(({ runtime, version, available, capabilities }) => ({ runtime, version, available, capabilities })),
    }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks',
    summary: 'Delegate something, with its bounds and what counts as done',
    access: 'write',
    body: CreateTask,
    answer: TaskView,
    status: 201,
    keep: (task) => ({ id: task.task_id }),
    rebuild: (self: TasksController, { principal }, { id }) => self.tasks.get(principal.ownerId, id),
  })
  create(@Input() { principal, body }: { principal: Principal; body: CreateTask }): Promise<TaskView> {
    return this.tasks.create(principal.ownerId, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tasks',
    summary: 'Your tasks, newest first',
    access: 'read',
    query: TaskListQuery,
    answer: TaskPage,
  })
  list(@Input() { principal, query }: { principal: Principal; query: z.output<typeof TaskListQuery> }): Promise<z.output<typeof TaskPage>> {
    const cursor = parseCursor(query.cursor)
    const before = cursor && { createdAt: cursor.updatedAt, id: cursor.id }
    return this.tasks.list(principal.ownerId, { status: query.status, before: before ?? null, limit: query.limit })
  }

  @ApiRoute({ method: 'GET', path: '/v1/tasks/{id}', summary: 'A task and how it stands', access: 'read', answer: TaskView })
  read(@Input() { principal, params }: Own): Promise<TaskView> {
    return this.tasks.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tasks/{id}/attempts',
    summary: 'Every try at a task',
    access: 'read',
    answer: AttemptList,
  })
  attempts(@Input() { principal, params }: Own): Promise<z.output<typeof AttemptList>> {
    return this.tasks.attempts(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks/{id}/attempts',
    summary: 'Begin an attempt with the first runtime that can do what the task needs',
    access: 'write',
    body: StartAttempt,
    answer: AttemptView,
    status: 201,
    keep: (attempt) => ({ id: attempt.attempt_id }),
    rebuild: (self: TasksController, { principal }, { id }) => self.tasks.attempt(principal.ownerId, id),
  })
  start(@Input() { principal, params, body }: Own & { body: StartAttempt }): Promise<AttemptView> {
    return this.tasks.start(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tasks/{id}/actions',
    summary: 'What was to be done, and what became of it',
    access: 'read',
    answer: ActionList,
  })
  actions(@Input() { principal, params }: Own): Promise<z.output<typeof ActionList>> {
    return this.tasks.actions(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks/{id}/actions',
    summary: 'Propose an action; it is judged, done at most once, and the same name again is the same action',
    description:
      'Its own key is what makes it the same action, for ever: an Idempotency-Key adds nothing. Outcomes: denied, waiting_for_approval, committed, ' +
      'failed, unknown (it may have happened and is never sent again), pending (submit it again later), budget_exhausted, cancelled.',
    access: 'write',
    body: SubmitAction,
    answer: ActionView,
    idempotent: false,
  })
  submit(@Input() { principal, params, body }: Own & { body: SubmitAction }): Promise<ActionView> {
    return this.tasks.submit(principal.ownerId, params.id, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/task-actions/{id}', summary: 'One action of a task', access: 'read', answer: ActionView })
  action(@Input() { principal, params }: Own): Promise<ActionView> {
    return this.tasks.action(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks/{id}/cancel',
    summary: 'Cancel a task; it is cancelled when nothing of it is out any more',
    access: 'write',
    answer: TaskView,
    idempotent: false,
  })
  cancel(@Input() { principal, params }: Own): Promise<TaskView> {
    return this.tasks.cancel(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks/{id}/complete',
    summary: 'Hand over a candidate: it is sealed and verified',
    access: 'write',
    body: CompleteTask,
    answer: CompletionView,
    idempotent: false,
  })
  complete(@Input() { principal, params, body }: Own & { body: CompleteTask }): Promise<CompletionView> {
    return this.tasks.complete(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tasks/{id}/commit',
    summary: 'Accept a verified candidate: only now the task is done',
    access: 'approve',
    body: CommitTask,
    answer: TaskView,
    keep: (task) => ({ id: task.task_id }),
    rebuild: (self: TasksController, { principal }, { id }) => self.tasks.get(principal.ownerId, id),
  })
  commit(@Input() { principal, params, body }: Own & { body: CommitTask }): Promise<TaskView> {
    return this.tasks.commit(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tasks/{id}/evidence',
    summary: 'Everything that shows how a task’s result came about',
    access: 'read',
    answer: EvidencePackage,
  })
  evidence(@Input() { principal, params }: Own): Promise<EvidencePackage> {
    return this.tasks.evidence(principal.ownerId, params.id)
  }
}
