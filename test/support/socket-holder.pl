# Holds a listening socket and starts a program with it, as systemd does for a socket unit: the program gets the
# socket as descriptor 3. SIGHUP stops the program and starts it again, with the same socket. SIGTERM ends both.
#
#   perl socket-holder.pl PORT PROGRAM ARGUMENT ...
use strict;
use Socket;
use POSIX qw(dup2);

my ($port, @program) = @ARGV;
$^F = 10;    # descriptors up to this one stay open in programs
socket(my $socket, PF_INET, SOCK_STREAM, getprotobyname('tcp')) or die "socket: $!";
setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
bind($socket, sockaddr_in($port, INADDR_LOOPBACK)) or die "bind: $!";
listen($socket, 511) or die "listen: $!";
dup2(fileno($socket), 3) if fileno($socket) != 3;

my ($child, $goes_on) = (0, 1);
$SIG{HUP} = sub { kill 'TERM', $child };
$SIG{TERM} = sub { $goes_on = 0; kill 'TERM', $child };
while ($goes_on) {
    $child = fork();
    if ($child == 0) {
        @ENV{qw(LISTEN_PID LISTEN_FDS)} = ($$, 1);
        exec @program or die "exec: $!";
    }
    until (waitpid($child, 0) == $child) { }
    my $code = $? >> 8;
    exit $code if $code != 0;
}
