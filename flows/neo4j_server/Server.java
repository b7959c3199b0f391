import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/**
 * Neo4j Community until SIGTERM or the end of the process PARENT (0: none), run from source:
 * java -cp 'lib/*' Server.java FOLDER PARENT NAME=VALUE...
 * The folder's parent holds nothing but this server; it is removed at the end.
 */
public final class Server {
    private static volatile DatabaseManagementService service;

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (service != null) {
                service.shutdown();
            }
            remove(folder);
        }));
        long parent = Long.parseLong(args[1]);
        if (parent != 0) {
            ProcessHandle.of(parent).ifPresentOrElse(
                    process -> process.onExit().thenRun(() -> System.exit(0)), () -> System.exit(0));
        }
        Map<String, String> settings = new LinkedHashMap<>();
        for (int i = 2; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        service = new DatabaseManagementServiceBuilder(folder).setConfigRaw(settings).build();
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
