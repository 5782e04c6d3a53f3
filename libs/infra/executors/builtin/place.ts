/** Where a run is: the realm whose memories and notes it may know, and its people's time zone (IANA). */
export type Place = { realmId: string; zone: string }

/** Finds the place of a tree; null where it is not the owner's or not there any more. */
export type FindPlace = (ownerId: string, treeId: string) => Promise<Place | null>
