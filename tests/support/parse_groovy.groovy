// Compiles a Jenkinsfile to its syntax tree without running it: a syntax error ends with its line and column.
import org.codehaus.groovy.control.CompilationUnit
import org.codehaus.groovy.control.Phases

def unit = new CompilationUnit()
unit.addSource(new File(args[0]))
unit.compile(Phases.CONVERSION)
println "${args[0]}: parses"
