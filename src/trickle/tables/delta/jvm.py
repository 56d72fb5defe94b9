"""Delta Lake's own classes, reached by py4j: the one place that knows their signatures (Delta 4.4).

Everything here works on one table, named by its location. Results are DataFrames, Python values, or opaque JVM
objects that only come back to this module.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from trickle.errors import SessionError, SourceError
from trickle.model.reason import HISTORY_EXPIRED
from trickle.tables.delta import LOG_FOLDER, STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta.actions import FileAction

Jvm = Any
"""A reference to a JVM object; py4j knows no types."""

_BESIDE_COMMITS: Final = frozenset({"_sidecars", "_staged_commits"})
"""The folders in that of a log, which mean nothing without commits."""


class DeltaHandle:
    """A Delta table by its location, and the calls into Delta that reading and writing it need."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Bind to the table at ``location`` (a path or URI); touches nothing yet.

        Raises:
            SessionError: ``NO_JVM``, a Spark Connect session has no JVM to call.
        """
        if getattr(spark, "_jsparkSession", None) is None:
            raise SessionError(
                "NO_JVM",
                "This is a Spark Connect session, which gives no access to Delta's log.",
                hint="Use a classic session, for instance trickle.local_session().",
            )
        self.spark = spark
        self.location = location
        self._session: Jvm = spark._jsparkSession
        jvm: Jvm = spark._jvm
        self._jvm: Jvm = jvm
        self._delta: Jvm = jvm.org.apache.spark.sql.delta
        self._none: Jvm = self._object(jvm.scala, "None")
        self._session_class: Jvm = jvm.org.apache.spark.sql.classic.SparkSession
        self._path: Jvm = None

    # -- plumbing ------------------------------------------------------------------------------------------------

    @staticmethod
    def _object(package: Jvm, name: str) -> Jvm:
        """Return a Scala singleton object."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    @property
    def log(self) -> Jvm:
        """Return the table's ``DeltaLog``; Delta itself caches it, and forgets it when the table is dropped."""
        self._session_class.setActiveSession(self._session)
        if self._path is None:
            self._path = self._jvm.org.apache.hadoop.fs.Path(self.location)
        return self._delta.DeltaLog.forTable(self._session, self._path)

    def seq(self, items: Iterable[Jvm]) -> Jvm:
        """Make a Scala sequence."""
        array = self._jvm.java.util.ArrayList()
        for item in items:
            array.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(array).toSeq()

    def some(self, value: Jvm) -> Jvm:
        """Make a Scala option; None gives the empty one."""
        return self._none if value is None else self._jvm.scala.Some(value)

    def frame(self, dataset: Jvm) -> DataFrame:
        """Wrap a JVM dataset."""
        return ClassicDataFrame(dataset, self.spark)

    # -- log -----------------------------------------------------------------------------------------------------

    def update(self) -> Jvm:
        """Return the newest snapshot, looking at storage."""
        return self.log.update(False, self._none, self._none)

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version."""
        self.log.checkpoint()

    def head(self) -> tuple[int, str]:
        """Return the newest version (-1: no table) and the table's id."""
        snapshot = self.update()
        version = int(snapshot.version())
        return version, str(snapshot.metadata().id()) if version >= 0 else ""

    def snapshot_at(self, version: int) -> Jvm:
        """Return the snapshot of a version; the newest one is Delta's cached own, any other is built."""
        log = self.log
        newest = log.unsafeVolatileSnapshot()
        if newest.version() != version:
            newest = log.update(False, self._none, self._none)
        if newest.version() == version:
            return newest
        return log.getSnapshotAt(version, self._none, self._none, False)

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Return the ``metaData`` action in force at a version."""
        body: Mapping[str, Any] = json.loads(self.snapshot_at(version).metadata().json())["metaData"]
        return body

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Return the ``protocol`` action in force at a version."""
        body: Mapping[str, Any] = json.loads(self.snapshot_at(version).protocol().json())["protocol"]
        return body

    def read_commits(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Return the text of the commits from ``start`` to ``end`` that the log still has."""
        log = self.log
        log.update(False, self._none, self._none)
        files = log.getChangeLogFiles(start, end, self._none, False)
        conf = log.newDeltaHadoopConf()
        while files.hasNext():
            pair = files.next()
            yield int(pair._1()), str(log.store().read(pair._2(), conf).mkString("\n"))

    def exists(self, path: str) -> bool:
        """Return whether a file, named as the log names it, is still on storage."""
        file, system = self._file(path)
        return bool(system.exists(file))

    def _file(self, path: str) -> tuple[Jvm, Jvm]:
        log = self.log
        file = self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(path))
        if not file.isAbsolute():
            file = self._jvm.org.apache.hadoop.fs.Path(log.dataPath(), file)
        return file, file.getFileSystem(log.newDeltaHadoopConf())

    # -- reading -------------------------------------------------------------------------------------------------

    def relation(self, version: int) -> DataFrame:
        """Return all rows at a version, as a plan that is one ``LogicalRelation`` pinned to that version.

        Built from the snapshot itself, not by ``versionAsOf``: that refuses versions older than the retention time
        even while their files are still there, and builds the snapshot again at each call.
        """
        log = self.log
        relation = log.createRelation(self.seq(()), self.some(self.snapshot_at(version)), self._none, True)
        return self.frame(self._session.baseRelationToDataFrame(relation))

    def files(self, snapshot: Jvm, files: Sequence[Jvm]) -> DataFrame:
        """Return the rows of ``AddFile`` actions, read with a snapshot's schema; deletion vectors are honoured."""
        return self.frame(self.log.createDataFrame(snapshot, self.seq(files), False, self._none))

    def addressed_files(self, snapshot: Jvm, files: Sequence[Jvm]) -> DataFrame:
        """Return the rows of ``AddFile`` actions with a ``_metadata`` that has ``row_index``, a row's place in its file.

        Delta shows that field only for tables that may have deletion vectors, though its reader always knows it: so
        the reader, and only the reader, is told that this one may.
        """
        relation = self.files(snapshot, files)._jdf.queryExecution().analyzed().relation()
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        masked = self.action("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, **features})
        protocol = snapshot.protocol().merge(self.seq([masked]))
        reader = relation.fileFormat()
        others = [getattr(reader, f"copy$default${place}")() for place in range(2, 8)]
        reader = reader.copy(protocol, *others)
        schemas = (relation.partitionSchema(), relation.dataSchema())
        relation = relation.copy(relation.location(), *schemas, self._none, reader, relation.options(), self._session)
        return self.frame(self._session.baseRelationToDataFrame(relation))

    def masked_rows(self, snapshot: Jvm, files: Sequence[Jvm]) -> DataFrame:
        """Return only the rows that the deletion vectors of ``AddFile`` actions mask."""
        log = self.log
        keep = self._delta.RowIndexFilterType.IF_NOT_CONTAINED
        filters = self._jvm.java.util.HashMap()
        for file in files:
            filters.put(file.path(), keep)
        by_path = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(filters)
        index = self._delta.files.CdcAddFileIndex(
            self._session, self._spec(files), log, log.dataPath(), snapshot, self.some(by_path)
        )
        return self._scan(index)

    def feed(self, snapshot: Jvm, files: Sequence[Jvm]) -> DataFrame:
        """Return the rows of change files, with ``_change_type``, by an ordinary file scan (Delta's own is an RDD)."""
        log = self.log
        index = self._delta.files.TahoeChangeFileIndex(self._session, self._spec(files), log, log.dataPath(), snapshot)
        return self._scan(index)

    def _spec(self, files: Sequence[Jvm]) -> Jvm:
        spec = getattr(self._delta.commands.cdc, "CDCReader$CDCDataSpec")
        return self.seq([spec(0, self._jvm.java.sql.Timestamp(0), self.seq(files), self._none)])

    def _scan(self, index: Jvm) -> DataFrame:
        reader = self._object(self._delta.commands.cdc, "CDCReader")
        return self.frame(reader.scanIndex(self._session, index, False))

    # -- actions -------------------------------------------------------------------------------------------------

    def action(self, kind: str, body: Mapping[str, Any]) -> Jvm:
        """Make an action from its JSON."""
        return self._delta.actions.Action.fromJson(json.dumps({kind: body}))

    def add_file(self, file: FileAction, vector: Mapping[str, Any] | None = None) -> Jvm:
        """Make the ``AddFile`` that reads the file of an ``add`` or ``remove``, with this or its own vector."""
        body = {
            "path": file.path,
            "partitionValues": file.body.get("partitionValues") or {},
            "size": file.size,
            "modificationTime": file.body.get("modificationTime") or 0,
            "dataChange": True,
        }
        mask = vector if vector is not None else file.body.get("deletionVector")
        if mask:
            body["deletionVector"] = mask
        return self.action("add", body)

    def vector_difference(self, left: FileAction, right: FileAction) -> Mapping[str, Any] | None:
        """Return a deletion vector of the rows that ``left`` masks and ``right`` does not, None if there is none."""
        if not left.vector:
            return None
        if not right.vector:
            body: Mapping[str, Any] = left.body["deletionVector"]
            return body
        log = self.log
        store = self._object(self._delta.storage.dv, "DeletionVectorStore").createInstance(log.newDeltaHadoopConf())
        rows = store.read(self.add_file(left).deletionVector(), log.dataPath()).copy()
        rows.diff(store.read(self.add_file(right).deletionVector(), log.dataPath()))
        count = int(rows.cardinality())
        if count == 0:
            return None
        portable = self._object(self._delta.deletionvectors, "RoaringBitmapArrayFormat").Portable()
        vector = self._delta.actions.DeletionVectorDescriptor.inlineInLog(rows.serializeAsByteArray(portable), count)
        return {
            "storageType": vector.storageType(),
            "pathOrInlineDv": vector.pathOrInlineDv(),
            "sizeInBytes": vector.sizeInBytes(),
            "cardinality": count,
        }

    def file_body(self, snapshot: Jvm, path: str) -> Mapping[str, Any]:
        """Find the ``add`` action of a file in a snapshot."""
        files = self.frame(snapshot.allFiles().toDF())
        row = files.where(files["path"] == path).select("path", "partitionValues", "size", "modificationTime").first()
        if row is None:
            raise SourceError(HISTORY_EXPIRED, f"{path} is not in the snapshot that a later commit removes it from.")
        return dict(row.asDict())

    # -- writing -------------------------------------------------------------------------------------------------

    def start(self, snapshot: Jvm) -> Jvm:
        """Start a transaction on a snapshot."""
        return self.log.startTransaction(self._none, self.some(snapshot))

    def all_files(self, transaction: Jvm) -> list[Jvm]:
        """Return the ``AddFile`` actions of a transaction's snapshot, with the count of their rows."""
        always = self._object(self._jvm.org.apache.spark.sql.catalyst.expressions, "Literal").TrueLiteral()
        found = transaction.filterFiles(self.seq([always]), True)
        return [found.apply(place) for place in range(found.size())]

    def write_operation(self, mode: str, record: str) -> Jvm:
        """Describe a write for the table's history, with the record as its user metadata."""
        save_mode = self._jvm.org.apache.spark.sql.SaveMode.valueOf(mode)
        write = getattr(self._delta, "DeltaOperations$Write")
        none = self._none
        return write(save_mode, none, none, self.some(record), none, none, none, none, none)

    def clustering(self, snapshot: Jvm) -> list[str]:
        """Return the names of the columns that a snapshot's table is clustered by, those within others left out."""
        info = self._object(self._delta.skipping.clustering, "ClusteringColumnInfo")
        names = info.extractLogicalNames(snapshot)
        found = [str(names.apply(place)) for place in range(names.size())]
        return [name for name in found if name in {str(field) for field in snapshot.schema().fieldNames()}]

    def protocol_for(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the ``protocol`` action that a new table of such metadata needs."""
        made = self._object(self._delta.actions, "Protocol")
        found = made.forNewTable(self._session, self.some(self.action("metaData", metadata)))
        body: Mapping[str, Any] = json.loads(found.json())["protocol"]
        return body

    def delete(self, path: str) -> None:
        """Delete a file, named as the log names it."""
        file, system = self._file(path)
        system.delete(file, False)

    def has_feed(self, snapshot: Jvm) -> bool:
        """Return whether a snapshot's table keeps a change feed."""
        value = snapshot.metadata().configuration().get("delta.enableChangeDataFeed")
        return bool(value.isDefined() and str(value.get()).lower() == "true")

    def folder_exists(self) -> bool:
        """Return whether there is anything at the location."""
        folder, system = self._folder()
        return bool(system.exists(folder))

    def delete_folder(self) -> None:
        """Delete the location and all in it, and make Delta forget it."""
        folder, system = self._folder()
        system.delete(folder, True)
        self.forget()

    def forget(self) -> None:
        """Make Delta drop its cached state of the table: it treats files of the same name as the same file."""
        self._object(self._delta, "DeltaLog").invalidateCache(self._session, self._folder()[0])

    def delete_empty_folder(self) -> None:
        """Delete the location if there is nothing in it but a log without commits."""
        folder, system = self._folder()
        log = self._jvm.org.apache.hadoop.fs.Path(folder, LOG_FOLDER)
        for path in (log, folder):
            if system.exists(path) and len(system.listStatus(path)) == 0:
                system.delete(path, False)

    def withdraw_checkpoint(self, version: int) -> None:
        """Delete a checkpoint whose commit is gone or another by now, and the folders that it made."""
        folder, system = self._folder()
        log = self._jvm.org.apache.hadoop.fs.Path(folder, LOG_FOLDER)
        if not system.exists(log):
            return
        names = [str(status.getPath().getName()) for status in system.listStatus(log)]
        is_gone = not any(name.endswith(".json") for name in names)
        for name in names:
            # The hint to the last checkpoint may be missing.
            is_mine = name.startswith(f"{version:020d}.checkpoint") or name == "_last_checkpoint"
            if is_mine or (is_gone and name in _BESIDE_COMMITS):
                system.delete(self._jvm.org.apache.hadoop.fs.Path(log, name), True)
        self.delete_empty_folder()
        while STATE_FOLDER in str(folder.toString()).split("/"):
            folder = folder.getParent()
            if system.exists(folder) and len(system.listStatus(folder)) == 0:
                system.delete(folder, False)
        self.forget()

    def _folder(self) -> tuple[Jvm, Jvm]:
        folder = self._jvm.org.apache.hadoop.fs.Path(self.location)
        return folder, folder.getFileSystem(self._session.sessionState().newHadoopConf())
