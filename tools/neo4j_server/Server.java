import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/**
 * Neo4j Community until SIGTERM or the end of the process PARENT (0: none), run from source:
 * java -cp 'lib/*' Server.java FOLDER PARENT [FILE...]. Settings are read from FOLDER/neo4j.conf. At the end FOLDER is
 * removed, and the FILEs, which tell others of this server.
 */
public final class Server {
    private static volatile DatabaseManagementService service;

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (service != null) {
                service.shutdown();
            }
            for (int i = 2; i < args.length; i++) {
                Path.of(args[i]).toFile().delete();
            }
            remove(folder);
        }));
        long parent = Long.parseLong(args[1]);
        if (parent != 0) {
            ProcessHandle.of(parent).ifPresentOrElse(
                    process -> process.onExit().thenRun(() -> System.exit(0)), () -> System.exit(0));
        }
        service = new DatabaseManagementServiceBuilder(folder)
                .loadPropertiesFromFile(folder.resolve("neo4j.conf"))
                .build();
        Thread.currentThread().join();
    }

    private static void remove(Path folder) {
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        } catch (IOException error) {
            System.err.println("cannot remove " + folder + ": " + error);
        }
    }
}
