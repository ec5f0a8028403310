# SPDX-License-Identifier: MIT
import urllib.request

from service import Service, cause, free_port

CONF = '''
daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ }}
http {{
  access_log off; client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
  uwsgi_temp_path temp; scgi_temp_path temp;
  server {{
    listen 127.0.0.1:{port}; root .; sendfile on;
    location /read/ {{ alias ./; sendfile off; output_buffers 1 4m; }}
  }}
}}
'''


class Nginx(Service):
    needs = {'nginx': 'nginx-light'}
    symbol, threshold = 'ngx_http_handler', '10ms'

    def start(self):
        self.port = free_port()
        (self.work / 'nginx.conf').write_text(CONF.format(port=self.port))
        (self.work / 'index.html').write_text('hello')
        self.write_file(1)
        self.pid = self.spawn('nginx', '-p', self.work, '-c', 'nginx.conf', '-e', 'stderr').pid
        self.listens(self.port)
        # What the socket takes at once has to be more than such a disk reads at once.
        self.slow_disk(read=1, write=32)

    def get(self, path):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/{path}') as answer:
            return answer.read()

    def quick(self):
        self.get('index.html')

    @cause('blocked in .*ngx_read_file.*: pread64')
    def cold_file(self):
        self.drop_file()
        self.get('read/file')

    @cause('blocked in .*sendfile')
    def slow_disk_sendfile(self):
        self.drop_file()
        self.get('file')
